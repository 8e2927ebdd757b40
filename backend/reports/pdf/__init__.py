"""A report as PDF: vector figures, embedded fonts, A4 or Letter, readable in black and white."""

from backend.reports.pdf.document import pdf_of

__all__ = ["pdf_of"]
