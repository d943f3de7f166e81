"""How this installation is put together: settings, addresses, servers. Imported by nothing but the edges."""
