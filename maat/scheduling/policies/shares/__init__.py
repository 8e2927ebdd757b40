"""Policies that divide time: Gavel's shares of rounds, Themis's auctions."""
