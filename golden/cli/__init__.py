"""The command line. rtl_tb and hw_capture bring their own commands, see the entry points
`mmagold.commands`."""
