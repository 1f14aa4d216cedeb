"""The embedded driver: archives in, assessments and alerts out."""
