"""Messages of webhooks: notices of events become messages, which are sent, signed and kept."""
