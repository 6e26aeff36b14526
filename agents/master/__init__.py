"""Session with the master: enrolment, reports up, orders down."""
