package resource

// The values with which a client sets when an operation takes effect
// (DSP2046, Settings.OperationApplyTime).
const (
	Immediate = "Immediate"
	onReset   = "OnReset"
)

// OperationApplyTimes returns the annotation @Redfish.OperationApplyTimeSupport, which
// lists when operations can take effect. It returns nil where clients cannot choose.
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

const operationApplyTimeSupport = OperationApplyTime + "Support"
