package clients

// drive is one that a volume can be made of, and what those of a volume have in
// common.
type drive struct{ uri, kind string }

// newMirror is a mirror of two drives of a kind, as the standard has it
// (DSP2046, Volume).
func newMirror(name string, drives []drive) map[string]any {
	var links []map[string]string
	for _, d := range drives {
		links = nil
		for _, other := range drives {
			if other.kind == d.kind && len(links) < 2 {
				links = append(links, map[string]string{"@odata.id": other.uri})
			}
		}
		if len(links) == 2 {
			break
		}
	}
	return map[string]any{"Name": name, "RAIDType": "RAID1", "Links": map[string]any{"Drives": links}}
}
