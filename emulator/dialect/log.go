package dialect

// Logs says what the logs of a BMC are called and what clients may do to them.
type Logs struct {
	System, Manager  string // last segment of the LogService's URI
	SEL              bool   // entries of the event log are records as IPMI has them
	DeletableEntries bool   // clients may remove single entries
}
