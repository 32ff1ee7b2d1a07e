package layering

// Writer is the one package that writes some fields of a status.
type Writer struct {
	Status  string // its Go type in controller/api
	Fields  []string
	Package string
}

// several are the statuses that more than one package writes.
var several = map[string]bool{"LCMMachineStatus": true}

// Writers are the owners of the fields of statuses that several packages write. A field has one
// writer, so that no two overwrite each other's.
var Writers = []Writer{}
