"""The paths of API v1, by what they are about.

Handlers read the body themselves: it is limited while it arrives, and JSON goes straight into typed models.
"""
