package ipmi

var dcmiCommands = []command{}
