package message

// The messages about fans. SensorEvent has those about readings.
var (
	FanFailed        = one{environmental, 0, "FanFailed", Critical, "The fan %1 has failed.", "Check the fan, and replace what is broken."}
	FanWarning       = one{environmental, 4, "FanWarning", Warning, "The fan %1 does not work fully.", "Check the fan, and replace what is broken."}
	FanRestored      = one{environmental, 0, "FanRestored", OK, "The fan %1 works again.", "None."}
	FanRemoved       = one{environmental, 0, "FanRemoved", OK, "The fan %1 was taken out.", "None."}
	FanInserted      = one{environmental, 0, "FanInserted", OK, "The fan %1 was put in.", "None."}
	FanGroupCritical = one{environmental, 0, "FanGroupCritical", Critical, "The fans %1 can no longer do their work.", "Look at each of them."}
	FanGroupWarning  = one{environmental, 0, "FanGroupWarning", Warning, "The fans %1 have lost redundancy.", "Look at each of them."}
	FanGroupNormal   = one{environmental, 0, "FanGroupNormal", OK, "The fans %1 work as they should.", "None."}
)

// Environmental lists the messages of the Environmental registry (DSP8011) that a server sends.
var Environmental = []Entry{
	FanFailed, FanWarning, FanRestored, FanRemoved,
	FanInserted, FanGroupCritical, FanGroupWarning, FanGroupNormal,
}
