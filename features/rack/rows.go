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
	{"IPMI", []row{
		{"I1", "presence ping"}, {"I2", "acknowledgements"}, {"I3", "authentication capabilities"}, {"I4", "channel cipher suites"},
		{"I5", "system GUID"}, {"I6", "sessions of IPMI 1.5"}, {"I7", "Open Session"}, {"I8", "RAKP"}, {"I9", "suite 0"}, {"I10", "suites 1, 2"},
		{"I11", "suite 3"}, {"I12", "suites of MD5"}, {"I13", "suites 15 to 17"}, {"I14", "K_g"}, {"I15", "users by name and by privilege"},
		{"I16", "session privilege"}, {"I17", "Close Session"}, {"I18", "session info"}, {"I19", "sequence window"}, {"I20", "idle sessions"},
		{"I21", "session limits"}, {"I22", "users"}, {"I23", "channels"}, {"I24", "payloads"}, {"I25", "device ID"}, {"I26", "reset of the BMC"},
		{"I27", "self test"}, {"I28", "ACPI states, device GUID"}, {"I29", "global enables, message flags"}, {"I30", "watchdog"},
		{"I31", "system info"}, {"I32", "bridging"}, {"I33", "firmware firewall"}, {"I34", "chassis status"}, {"I35", "chassis control"},
		{"I36", "identify"}, {"I37", "restore policy, buttons"}, {"I38", "restart cause"}, {"I39", "hours of power"}, {"I40", "boot options"},
		{"I41", "boot options 1 to 4"}, {"I42", "boot flags"}, {"I43", "boot initiator and mailbox"}, {"I44", "events"}, {"I45", "event filters"},
		{"I46", "alerts"}, {"I47", "log: info"}, {"I48", "log: reading"}, {"I49", "log: adding, deleting, clearing"}, {"I50", "log: time"},
		{"I51", "sensor records"}, {"I52", "sensor records: changes"}, {"I53", "device's sensor records"}, {"I54", "sensor readings"},
		{"I55", "thresholds"}, {"I56", "FRU"}, {"I57", "LAN: reading"}, {"I58", "LAN: setting"}, {"I59", "IPv6"}, {"I60", "VLAN"},
		{"I61", "LAN: statistics"}, {"I62", "SOL: settings"}, {"I63", "SOL"}, {"I64", "SOL: taking over"}, {"I65", "SOL: encryption"},
		{"I66", "DCMI capabilities"}, {"I67", "DCMI power"}, {"I68", "DCMI identity"}, {"I69", "DCMI sensors"}, {"I70", "commands of other standards"},
		{"I71", "Dell's commands"}, {"I72", "HPE's and Supermicro's commands"}, {"I73", "commands of vendors"}, {"I74", "privileges"},
		{"I75", "virtual machines"}, {"I76", "the view from within"}, {"I77", "faults on demand"}, {"I78", "persistence"}, {"I79", "many BMCs"},
		{"I80", "addresses and ports"},
	}},
	{"What ipmitool and FreeIPMI must see", []row{
		{"tool-1", "no cipher suite named"}, {"tool-2", "cipher suites"}, {"tool-3", "wrong credentials"}, {"tool-4", "K_g"}, {"tool-5", "IPMI 1.5"},
		{"tool-6", "privileges"}, {"tool-7", "power"}, {"tool-8", "restore policy"}, {"tool-9", "identify"}, {"tool-10", "boot device"},
		{"tool-11", "smaller commands"}, {"tool-12", "LAN"}, {"tool-13", "users"}, {"tool-14", "channels and sessions"}, {"tool-15", "event log"},
		{"tool-16", "sensors and FRU"}, {"tool-17", "SOL"}, {"tool-18", "DCMI, PEF, firewall, satellite"}, {"tool-19", "vendors' commands"},
		{"tool-20", "reset of the BMC"}, {"tool-21", "bmc-info"}, {"tool-22", "ipmipower"}, {"tool-23", "ipmi-chassis"},
		{"tool-24", "ipmi-sel, ipmi-sensors, ipmi-fru"}, {"tool-26", "ipmi-dcmi, ipmi-pef-config, bmc-device"}, {"tool-27", "ipmiconsole"},
	}},
	{"Quirks of real BMCs", []row{
		{"Q1", "a drive that is stale after ejecting"}, {"Q2", "virtual media that are detached"}, {"Q3", "virtual media that have moved"}, {"Q4", "inserting: strict payload"},
		{"Q5", "inserting by PATCH alone"}, {"Q6", "slots that take no image"}, {"Q7", "inserting: parameters that others leave out"}, {"Q8", "ejecting needs a body"},
		{"Q9", "no images by HTTP"}, {"Q10", "a CD that is another"}, {"Q11", "an override that is ignored"}, {"Q12", "boot override: Enabled must be sent, or nothing that is so already"}, {"Q13", "boot override: all or little"},
		{"Q14", "an override that is set elsewhere"}, {"Q15", "no override that stays"}, {"Q16", "changes refused in POST"}, {"Q17", "power has to settle"}, {"Q18", "invalid power state"},
		{"Q19", "a BMC that is not ready"}, {"Q20", "jobs that block others"}, {"Q21", "tasks that come late and go early"}, {"Q22", "few sessions, or none"}, {"Q23", "ETags"},
		{"Q24", "connections that end, answers that are packed or slow"}, {"Q25", "licences"}, {"Q26", "messages that are an object"}, {"Q27", "links that are missing"},
		{"Q28", "Members that are null, $expand that leaves out, IDs that move on"}, {"Q29", "events and times of a wrong form"}, {"Q30", "a registry that is ahead of the BIOS"},
		{"Q31", "a reset that hangs"}, {"Q32", "a value that is so already"}, {"Q33", "a volume that is not deleted when one says when"}, {"Q34", "accounts that are slots, logins that wait or are blocked"}, {"Q35", "IPMI"},
	}},
	{"Dialects of vendors", []row{{"dialect", "what a naive client meets, and how a good one copes"}}},
	{"Faults of other emulators that shall not come back", []row{
		{"fault-1", "a bogus If-Match and a bogus property are taken"}, {"fault-2", "login takes a login"},
		{"fault-3", "errors without the standard's envelope, $expand ignored"}, {"fault-4", "creating a volume replaces the others"},
		{"fault-5", "errors in plain text, boot overrides ignored"}, {"fault-6", "a query changes what others read"},
		{"fault-7", "any If-Match fails an update"}, {"fault-8", "unknown query options (which that emulator did well)"},
	}},
}
