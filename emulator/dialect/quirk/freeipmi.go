package quirk

// freeIPMI are those that FreeIPMI has names for.
var freeIPMI = []Quirk{}
