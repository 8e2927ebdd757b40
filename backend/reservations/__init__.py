"""Reservations of live clusters."""
