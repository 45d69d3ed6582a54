"""What the desk knows. A real one would ask its systems."""

BOOKINGS = {"LK7M2P": {"name": "ada", "seat": "14C"}}
FREE = ["3A", "12F"]
BAGS = {"AB123": "Lisbon"}
