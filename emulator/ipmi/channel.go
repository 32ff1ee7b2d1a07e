package ipmi

var channelCommands = []command{}
