"""What a command shows and what it hands to other programs; see the modules of this folder."""
