"""MQTT: the connection to a broker, what it says, and what is known of its messages."""
