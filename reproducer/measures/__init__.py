"""What each measure of a suite is called, takes and gives: known to every document that asks for or reports one."""
