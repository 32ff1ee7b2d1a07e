package redfish

import (
	"net/http"
	"slices"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// When an operation takes effect, where its resource leaves that to clients
// (DSP2046, Settings.OperationApplyTime).
const (
	immediate = "Immediate"
	onReset   = "OnReset"
)

// applyTimes is the annotation that lists when operations can take effect; nil
// where clients have no choice.
func (r *resource) applyTimes(v view) object {
	if r.applies == nil {
		return nil
	}
	values := r.applies(v)
	if values == nil {
		return nil
	}
	return object{"@odata.type": "#Settings.v1_4_0.OperationApplyTimeSupport", "SupportedValues": values}
}

const operationTimes = operationTime + "Support"

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
