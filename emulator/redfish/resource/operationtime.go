package resource

// When an operation takes effect, where its resource leaves that to clients
// (DSP2046, Settings.OperationApplyTime).
const (
	Immediate = "Immediate"
	onReset   = "OnReset"
)

// OperationApplyTimes is the annotation that lists when operations can take effect; nil
// where clients have no choice.
func (r *Row) OperationApplyTimes(v View) Object {
	if r.ApplyTimes == nil {
		return nil
	}
	values := r.ApplyTimes(v)
	if values == nil {
		return nil
	}
	return Object{"@odata.type": "#Settings.v1_4_0.OperationApplyTimeSupport", "SupportedValues": values}
}

const operationTimes = OperationApplyTime + "Support"
