package message

// The messages about power supplies and power distribution.
var (
	PowerSupplyFailed            = one{power, 0, "PowerSupplyFailed", Critical, "The power supply %1 has failed.", "Check the power supply, and replace what is broken."}
	PowerSupplyPredictiveFailure = one{power, 0, "PowerSupplyPredictiveFailure", Warning, "The power supply %1 expects to fail.", "Check the power supply, and replace what is broken."}
	PowerSupplyWarning           = one{power, 0, "PowerSupplyWarning", Warning, "The power supply %1 does not work fully.", "Check the power supply, and replace what is broken."}
	PowerSupplyRestored          = one{power, 0, "PowerSupplyRestored", OK, "The power supply %1 works again.", "None."}
	LossOfInputPower             = one{power, 0, "LossOfInputPower", Warning, "%1 gets no power.", "Check the mains and the cable."}
	LineInputPowerFault          = one{power, 0, "LineInputPowerFault", Warning, "The power that %1 gets is not as it should be.", "Check the mains and the cable."}
	LineInputPowerRestored       = one{power, 0, "LineInputPowerRestored", OK, "%1 gets power again.", "None."}
	PowerSupplyRemoved           = one{power, 0, "PowerSupplyRemoved", OK, "The power supply %1 was taken out.", "None."}
	PowerSupplyInserted          = one{power, 0, "PowerSupplyInserted", OK, "The power supply %1 was put in.", "None."}
	PowerSupplyGroupCritical     = one{power, 0, "PowerSupplyGroupCritical", Critical, "The power supplies %1 can no longer do their work.", "Look at each of them."}
	PowerSupplyGroupWarning      = one{power, 0, "PowerSupplyGroupWarning", Warning, "The power supplies %1 have lost redundancy.", "Look at each of them."}
	PowerSupplyGroupNormal       = one{power, 0, "PowerSupplyGroupNormal", OK, "The power supplies %1 work as they should.", "None."}
	ChassisPoweredOff            = two{power, 1, "ChassisPoweredOff", OK, "The %1 %2 was switched off.", "None."}
	ChassisPoweredOn             = two{power, 1, "ChassisPoweredOn", OK, "The %1 %2 was switched on.", "None."}
)

// Power lists the messages of the Power registry (DSP8011) that a server sends.
var Power = []Entry{
	PowerSupplyFailed, PowerSupplyPredictiveFailure, PowerSupplyWarning, PowerSupplyRestored,
	LossOfInputPower, LineInputPowerFault, LineInputPowerRestored, PowerSupplyRemoved,
	PowerSupplyInserted, PowerSupplyGroupCritical, PowerSupplyGroupWarning, PowerSupplyGroupNormal,
	ChassisPoweredOff, ChassisPoweredOn,
}
