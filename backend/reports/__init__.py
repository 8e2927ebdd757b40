"""Reports for managers: built, kept, and delivered by schedule."""
