package message

// The messages about network adapters: %1 is the adapter, %2 its port, %3 the function.
var (
	CableInserted                 = two{networkDevice, 0, "CableInserted", OK, "A cable was put into the adapter %1, port %2.", "None."}
	CableRemoved                  = two{networkDevice, 0, "CableRemoved", OK, "The cable was taken out of the adapter %1, port %2.", "None."}
	ConnectionDropped             = three{networkDevice, 0, "ConnectionDropped", OK, "The connection of the adapter %1, port %2, function %3 was lost.", "None."}
	ConnectionEstablished         = three{networkDevice, 0, "ConnectionEstablished", OK, "The adapter %1, port %2, function %3 is connected.", "None."}
	DegradedConnectionEstablished = three{networkDevice, 0, "DegradedConnectionEstablished", Warning, "The adapter %1, port %2, function %3 is connected, but not fully.", "Check the cable and the other side of the connection."}
	ConnectionSpeedLow            = five{networkDevice, 1, "ConnectionSpeedLow", Warning, "The connection of the adapter %1, port %2, function %3 has %4 Gbit/s, fewer than %5.", "Check the cable and the other side of the connection."}
	LinkFlapDetected              = five{networkDevice, 0, "LinkFlapDetected", Warning, "The connection of the adapter %1, port %2, function %3 came and went %4 times within %5 minutes.", "Check the cable and the other side of the connection."}
)

// NetworkDevice lists the messages of the NetworkDevice registry (DSP8011).
var NetworkDevice = []Entry{
	CableInserted, CableRemoved, ConnectionDropped, ConnectionEstablished,
	DegradedConnectionEstablished, ConnectionSpeedLow, LinkFlapDetected,
}
