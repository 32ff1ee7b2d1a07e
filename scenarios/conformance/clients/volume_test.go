package clients

// drive is a drive that a volume can use. Drives of one volume are of the same kind.
type drive struct{ uri, kind string }

// newMirror returns the body that creates a RAID1 volume on two drives of the same
// kind (DSP2046, Volume).
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
