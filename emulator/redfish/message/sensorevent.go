package message

// The messages about sensors: %1 is the sensor, %2 its reading, %3 the unit, %4 the threshold.
var (
	ReadingAboveUpperCautionThreshold  = four{sensorEvent, 0, "ReadingAboveUpperCautionThreshold", Warning, "The sensor %1 reads %2 %3, above the upper caution threshold of %4.", "Look at the parts in RelatedItem."}
	ReadingAboveUpperCriticalThreshold = four{sensorEvent, 0, "ReadingAboveUpperCriticalThreshold", Critical, "The sensor %1 reads %2 %3, above the upper critical threshold of %4.", "Look at the parts in RelatedItem."}
	ReadingAboveUpperFatalThreshold    = four{sensorEvent, 0, "ReadingAboveUpperFatalThreshold", Critical, "The sensor %1 reads %2 %3, above the upper fatal threshold of %4.", "Look at the parts in RelatedItem."}
	ReadingBelowLowerCautionThreshold  = four{sensorEvent, 0, "ReadingBelowLowerCautionThreshold", Warning, "The sensor %1 reads %2 %3, below the lower caution threshold of %4.", "Look at the parts in RelatedItem."}
	ReadingBelowLowerCriticalThreshold = four{sensorEvent, 0, "ReadingBelowLowerCriticalThreshold", Critical, "The sensor %1 reads %2 %3, below the lower critical threshold of %4.", "Look at the parts in RelatedItem."}
	ReadingBelowLowerFatalThreshold    = four{sensorEvent, 0, "ReadingBelowLowerFatalThreshold", Critical, "The sensor %1 reads %2 %3, below the lower fatal threshold of %4.", "Look at the parts in RelatedItem."}
	ReadingBelowUpperFatalThreshold    = four{sensorEvent, 0, "ReadingBelowUpperFatalThreshold", Critical, "The sensor %1 reads %2 %3, below the upper fatal threshold of %4 again, but not yet normal.", "Look at the parts in RelatedItem."}
	ReadingBelowUpperCriticalThreshold = four{sensorEvent, 0, "ReadingBelowUpperCriticalThreshold", Warning, "The sensor %1 reads %2 %3, below the upper critical threshold of %4 again, but not yet normal.", "Look at the parts in RelatedItem."}
	ReadingAboveLowerFatalThreshold    = four{sensorEvent, 0, "ReadingAboveLowerFatalThreshold", Critical, "The sensor %1 reads %2 %3, above the lower fatal threshold of %4 again, but not yet normal.", "Look at the parts in RelatedItem."}
	ReadingAboveLowerCriticalThreshold = four{sensorEvent, 0, "ReadingAboveLowerCriticalThreshold", Warning, "The sensor %1 reads %2 %3, above the lower critical threshold of %4 again, but not yet normal.", "Look at the parts in RelatedItem."}
	ReadingWarning                     = three{sensorEvent, 0, "ReadingWarning", Warning, "The sensor %1 reads %2 %3, which is worth a warning.", "Look at the parts in RelatedItem."}
	ReadingCritical                    = three{sensorEvent, 0, "ReadingCritical", Critical, "The sensor %1 reads %2 %3, which is critical.", "Look at the parts in RelatedItem."}
	ReadingNoLongerCritical            = three{sensorEvent, 0, "ReadingNoLongerCritical", Warning, "The sensor %1 reads %2 %3, which is no longer critical.", "Look at the parts in RelatedItem."}
	SensorReadingNormalRange           = three{sensorEvent, 0, "SensorReadingNormalRange", OK, "The sensor %1 reads %2 %3, which is normal.", "None."}
	InvalidSensorReading               = one{sensorEvent, 0, "InvalidSensorReading", Warning, "What the sensor %1 reads makes no sense.", "Check the sensor and its cable."}
	SensorFailure                      = one{sensorEvent, 0, "SensorFailure", Warning, "The sensor %1 has failed.", "Check the sensor and its cable."}
	SensorRestored                     = one{sensorEvent, 0, "SensorRestored", OK, "The sensor %1 works again.", "None."}
	SensorConnected                    = one{sensorEvent, 1, "SensorConnected", OK, "The sensor %1 was connected.", "None."}
	SensorDisconnected                 = one{sensorEvent, 1, "SensorDisconnected", Warning, "The sensor %1 was disconnected.", "Check the cable of the sensor."}
)

// SensorEvent lists the messages of the SensorEvent registry (DSP8011).
var SensorEvent = []Entry{
	ReadingAboveUpperCautionThreshold, ReadingAboveUpperCriticalThreshold, ReadingAboveUpperFatalThreshold, ReadingBelowLowerCautionThreshold,
	ReadingBelowLowerCriticalThreshold, ReadingBelowLowerFatalThreshold, ReadingBelowUpperFatalThreshold, ReadingBelowUpperCriticalThreshold,
	ReadingAboveLowerFatalThreshold, ReadingAboveLowerCriticalThreshold, ReadingWarning, ReadingCritical,
	ReadingNoLongerCritical, SensorReadingNormalRange, InvalidSensorReading, SensorFailure,
	SensorRestored, SensorConnected, SensorDisconnected,
}
