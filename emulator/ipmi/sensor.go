package ipmi

var sensorCommands = []command{}
