package resource

// Excerpts are the properties in the excerpt of a type (DSP8010, Redfish.Excerpt
// in the CSDL of each).
var Excerpts = map[string][]string{
	"Control": {
		"AllowableMax", "AllowableMin", "AllowableNumericValues", "ControlLoop", "ControlMode", "DefaultSetPoint",
		"ReadingUnits", "SetPoint", "SetPointUnits", "SettingMax", "SettingMin",
	},
	"Job":          {"EstimatedCompletionTime", "JobState", "PercentComplete"},
	"LeakDetector": {"DetectorState", "DeviceName", "PhysicalContext", "PhysicalSubContext"},
	"Sensor": {
		"ApparentVA", "ApparentkVAh", "CrestFactor", "DeviceName", "LifetimeReading", "PhaseAngleDegrees", "PhysicalContext",
		"PhysicalSubContext", "PowerFactor", "ReactiveVAR", "ReactivekVARh", "Reading", "SensorResetTime", "SpeedRPM", "THDPercent",
	},
}
