package redfish

import (
	"net/http"
	"slices"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// effective takes the annotation out of what a client sent. It is false if the
// request was refused for it.
func (x *exchange) effective(in *document, v view) (when string, ok bool) {
	value, sent := in.get(operationTime)
	if a := x.match.action; a != nil && !a.defers || x.r.Method == http.MethodPatch || x.match.applyTimes(v) == nil {
		return immediate, true
	}
	if !sent {
		return x.match.applies(v)[0], true
	}
	when, _ = value.(string)
	if in.fields[in.at(operationTime)].twice || !slices.Contains(x.match.applies(v), when) {
		x.refuse(http.StatusBadRequest, message.PropertyValueNotInList.With(echo(value), operationTime).About("#/"+operationTime))
		return "", false
	}
	*in = in.but(func(f field) bool { return f.name == operationTime })
	return when, true
}
