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
	values := r.SupportedApplyTimes(v)
	if values == nil {
		return nil
	}
	return Object{"@odata.type": "#Settings.v1_4_0.OperationApplyTimeSupport", "SupportedValues": values}
}

// SupportedApplyTimes returns the values of @Redfish.OperationApplyTime that clients can
// choose from. It is nil where the resource has no annotation, and empty where the
// annotation lists no values.
func (r *Row) SupportedApplyTimes(v View) []string {
	if r.ApplyTimes == nil {
		return nil
	}
	return r.ApplyTimes(v)
}

const operationApplyTimeSupport = OperationApplyTime + "Support"
