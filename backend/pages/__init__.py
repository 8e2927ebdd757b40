"""Guards of the pages' own requests, which need both web and accounts."""
