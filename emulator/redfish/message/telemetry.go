package message

// The messages about triggers. %1 is the metric, %2 its value; the trigger comes last.
var (
	TriggerNumericAboveUpperWarning  = four{telemetry, 0, "TriggerNumericAboveUpperWarning", Warning, "The metric %1 is at %2, above the upper warning threshold %3 of the trigger %4.", "Look at what the metric stands for."}
	TriggerNumericAboveUpperCritical = four{telemetry, 0, "TriggerNumericAboveUpperCritical", Critical, "The metric %1 is at %2, above the upper critical threshold %3 of the trigger %4.", "Look at what the metric stands for."}
	TriggerNumericBelowLowerWarning  = four{telemetry, 0, "TriggerNumericBelowLowerWarning", Warning, "The metric %1 is at %2, below the lower warning threshold %3 of the trigger %4.", "Look at what the metric stands for."}
	TriggerNumericBelowLowerCritical = four{telemetry, 0, "TriggerNumericBelowLowerCritical", Critical, "The metric %1 is at %2, below the lower critical threshold %3 of the trigger %4.", "Look at what the metric stands for."}
	TriggerNumericAboveLowerCritical = four{telemetry, 0, "TriggerNumericAboveLowerCritical", Warning, "The metric %1 is at %2, above the lower critical threshold %3 of the trigger %4 again, but not yet normal.", "Look at what the metric stands for."}
	TriggerNumericBelowUpperCritical = four{telemetry, 0, "TriggerNumericBelowUpperCritical", Warning, "The metric %1 is at %2, below the upper critical threshold %3 of the trigger %4 again, but not yet normal.", "Look at what the metric stands for."}
	TriggerNumericReadingNormal      = three{telemetry, 0, "TriggerNumericReadingNormal", OK, "The metric %1 is at %2, normal for the trigger %3.", "None."}
	TriggerDiscreteConditionMet      = three{telemetry, 0, "TriggerDiscreteConditionMet", OK, "The metric %1 has the value %2, which the trigger %3 waits for.", "Look at what the metric stands for."}
	TelemetryDataCreated             = two{telemetry, 1, "TelemetryDataCreated", OK, "The telemetry data %1 of the kind %2 were made.", "None."}
)

// Telemetry lists the messages of the Telemetry registry (DSP8011).
var Telemetry = []Entry{
	TriggerNumericAboveUpperWarning, TriggerNumericAboveUpperCritical, TriggerNumericBelowLowerWarning, TriggerNumericBelowLowerCritical,
	TriggerNumericAboveLowerCritical, TriggerNumericBelowUpperCritical, TriggerNumericReadingNormal, TriggerDiscreteConditionMet,
	TelemetryDataCreated,
}
