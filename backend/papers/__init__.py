"""The papers' tables and figures, and reproductions of them."""
