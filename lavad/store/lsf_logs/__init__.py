"""lsb.acct and lsb.events, written from the database for programs that read LSF's logs."""
