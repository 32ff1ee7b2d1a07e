package message

// The messages about logs.
var (
	DiagnosticDataCollected = one{logService, 0, "DiagnosticDataCollected", OK, "Diagnostic data of the kind %1 were gathered.", "None."}
	LogCleared              = one{logService, 1, "LogCleared", OK, "The log %1 was cleared.", "None."}
)

// LogService lists the messages of the LogService registry (DSP8011).
var LogService = []Entry{
	DiagnosticDataCollected, LogCleared,
}
