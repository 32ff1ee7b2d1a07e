package rack

// row is a requirement of the emulated rack.
type row struct{ id, title string }

// group is a group of requirements.
type group struct {
	title string
	rows  []row
}

// groups are the requirements that scenarios name by their tags: @A7. They are
// numbered as in the requirements on the Redfish service.
var groups = []group{
	{"Protocol and HTTP", []row{
		{"A1", "fixed addresses"}, {"A2", "headers of every answer"}, {"A3", "OData-Version"}, {"A4", "HEAD and OPTIONS"},
		{"A5", "methods that are not taken"}, {"A6", "ETags"}, {"A7", "If-Match"}, {"A8", "PATCH"}, {"A9", "POST, PUT and DELETE"},
		{"A10", "errors"}, {"A11", "$top and $skip"}, {"A12", "$expand"}, {"A13", "$select, only and excerpt"}, {"A14", "$filter"},
		{"A15", "unknown query options"}, {"A16", "ProtocolFeaturesSupported"}, {"A17", "Prefer"}, {"A18", "tasks"},
		{"A19", "OperationApplyTime"}, {"A20", "settings that wait"}, {"A21", "ActionInfo"}, {"A22", "CollectionCapabilities"},
		{"A23", "keep-alive, HTTP/2, gzip"}, {"A24", "schemas"}, {"A25", "message registries"}, {"A26", "schema versions"}, {"A27", "SSDP"},
	}},
	{"Security", []row{
		{"B1", "Basic authentication"}, {"B2", "sessions"}, {"B3", "session limit"}, {"B4", "accounts, roles, lockout"}, {"B5", "privileges"},
		{"B6", "TLS"}, {"B7", "certificates"}, {"B8", "secure boot"}, {"B9", "component integrity, TPM"}, {"B11", "audit"},
	}},
	{"System, boot, BIOS", []row{
		{"C1", "reset"}, {"C2", "boot progress"}, {"C3", "boot override"}, {"C4", "boot options and order"}, {"C5", "BIOS attributes"},
		{"C6", "BIOS defaults and passwords"}, {"C8", "inventory"}, {"C9", "lamp, asset tag, host name"}, {"C10", "watchdog, power restore policy"},
	}},
	{"Storage and media", []row{{"D1", "controllers and drives"}, {"D2", "volumes"}, {"D5", "virtual media"}}},
	{"Manager, chassis, telemetry", []row{
		{"E1", "manager reset"}, {"E2", "network protocols"}, {"E3", "manager's network ports"}, {"E4", "clock"}, {"E5", "power, heat, sensors"},
		{"E6", "power limits"}, {"E7", "logs"}, {"E8", "events that are posted"}, {"E9", "events that are streamed"}, {"E10", "telemetry"},
		{"E11", "firmware update"}, {"E12", "pushed updates"}, {"E13", "firmware inventory"}, {"E14", "jobs"},
	}},
	{"Qualities of the emulator", []row{
		{"F1", "faults on demand"}, {"F2", "latency"}, {"F3", "scripted scenarios"}, {"F4", "persistence"}, {"F5", "many BMCs"},
		{"F7", "journal and metrics"}, {"F10", "identities from the seed"},
	}},
	{"Faults of other emulators that shall not come back", []row{
		{"fault-1", "a bogus If-Match and a bogus property are taken"}, {"fault-2", "login takes a login"},
		{"fault-3", "errors without the standard's envelope, $expand ignored"}, {"fault-4", "creating a volume replaces the others"},
		{"fault-5", "errors in plain text, boot overrides ignored"}, {"fault-6", "a query changes what others read"},
		{"fault-7", "any If-Match fails an update"}, {"fault-8", "unknown query options (which that emulator did well)"},
	}},
}
