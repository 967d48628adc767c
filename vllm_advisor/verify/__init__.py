"""A running deployment against its plan. With ``probe`` the only room that touches the world."""
