package dialect

import "fmt"

// VendorMessage is how a vendor's service words what the standard has a message for.
type VendorMessage struct {
	Registry, Version string // "IDRAC", "2.8.0"
	Key               string // "RAC0218"
	Text, Resolution  string // for people; the arguments are those of the standard's message: %1
	Status            int    // of an answer that says nothing else; 0: as usual
}

// validateMessages says what is wrong with them.
func (r *Record) validateMessages(need func(ok bool, field, fix string)) {
	for key, s := range r.Protocol.Messages {
		need(s.Registry != "" && s.Key != "" && s.Text != "", "protocol.messages."+key, "needs registry, key and text")
		need(registryVersion.MatchString(s.Version), "protocol.messages."+key+".version", fmt.Sprintf("%q: must be a version like 2.8.0", s.Version))
		need(s.Status == 0 || s.Status >= 400 && s.Status < 600, "protocol.messages."+key+".status", fmt.Sprintf("%d: must be 400 to 599, or 0", s.Status))
	}
}
