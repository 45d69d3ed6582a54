"""What tool modules are written against: ``rasa.mantle.tools.decorator`` and ``rasa.mantle.tools.result``."""
