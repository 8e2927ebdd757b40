"""Whether the service and its worker are well."""
