package dialect

import "fmt"

// VendorMessage is a message of a vendor's registry. It replaces one of the
// standard's.
type VendorMessage struct {
	Registry   string // prefix of the registry: "IDRAC"
	Version    string // version of the registry: "2.8.0"
	Key        string // key of the message in the registry: "RAC0218"
	Text       string // property Message; %1 is the first argument of the standard's message
	Resolution string // property Resolution, with the same arguments
	Status     int    // HTTP status of a response with this message alone; 0: that of the standard's message
}

// validateMessages checks Protocol.Messages.
func (r *Record) validateMessages(need func(ok bool, field, fix string)) {
	for key, s := range r.Protocol.Messages {
		need(s.Registry != "" && s.Key != "" && s.Text != "", "protocol.messages."+key, "needs registry, key and text")
		need(registryVersion.MatchString(s.Version), "protocol.messages."+key+".version", fmt.Sprintf("%q: must be a version like 2.8.0", s.Version))
		need(s.Status == 0 || s.Status >= 400 && s.Status < 600, "protocol.messages."+key+".status", fmt.Sprintf("%d: must be 400 to 599, or 0", s.Status))
	}
}
