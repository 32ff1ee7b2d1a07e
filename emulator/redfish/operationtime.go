package redfish

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
