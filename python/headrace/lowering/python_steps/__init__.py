"""Steps without a native twin: what their code reaches, and how Python is called for them."""
