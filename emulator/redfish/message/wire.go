package message

import (
	"bytes"
	"encoding/json"
)

// wire is the JSON form of a Message (Message.v1_3_0).
type wire struct {
	Type       string   `json:"@odata.type"`
	ID         string   `json:"MessageId"`
	Text       string   `json:"Message"`
	Args       []string `json:"MessageArgs,omitempty"`
	Related    []string `json:"RelatedProperties,omitempty"`
	Severity   Severity `json:"MessageSeverity"`
	Old        Severity `json:"Severity"` // the property before Message 1.1
	Resolution string   `json:"Resolution"`
}

func (v Versions) wire(m Message) wire {
	m = v.In(m)
	return wire{
		Type: "#Message.v1_3_0.Message", ID: v.ID(m), Text: m.Text, Args: m.Args, Related: m.Related,
		Severity: m.Severity, Old: m.Severity, Resolution: m.Resolution,
	}
}

// ExtendedInfo returns the value of an @Message.ExtendedInfo annotation.
func (v Versions) ExtendedInfo(ms ...Message) any {
	out := make([]wire, len(ms))
	for i, m := range ms {
		out[i] = v.wire(m)
	}
	return out
}

// Error returns the body of an error response. Its code is that of the message, or
// GeneralError when there are several.
func (v Versions) Error(ms ...Message) []byte {
	head := GeneralError.With()
	if len(ms) == 1 {
		head = v.In(ms[0])
	}
	var body struct {
		Error struct {
			Code     string `json:"code"`
			Message  string `json:"message"`
			Extended any    `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	body.Error.Code, body.Error.Message = v.ID(head), head.Text
	body.Error.Extended = v.ExtendedInfo(ms...)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		panic(err) // strings always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
