"""What each backend pushes down, and what it costs next to hand-written statements."""
