package dialect

// Logs describes the event logs of a BMC.
type Logs struct {
	System, Manager  string // last segment of the URIs of the system's and the manager's LogService
	SEL              bool   // LogEntries of the event log have the type SEL and the bytes of their IPMI records
	DeletableEntries bool   // clients may DELETE single entries
}
