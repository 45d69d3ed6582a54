"""``rasa.mantle.orchestration``: as much of it as tools ask for."""
