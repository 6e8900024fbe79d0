package codes

// PowerMinor names the minor function of an IRP_MJ_POWER, from the public wdm.h; ""
// for others.
func PowerMinor(n uint8) string {
	names := [...]string{"IRP_MN_WAIT_WAKE", "IRP_MN_POWER_SEQUENCE", "IRP_MN_SET_POWER", "IRP_MN_QUERY_POWER"}
	if int(n) < len(names) {
		return names[n]
	}
	return ""
}

// DevicePower names a DEVICE_POWER_STATE, SystemPower a SYSTEM_POWER_STATE, as the
// ACPI specification has them; "" for others.
func DevicePower(n uint32) string { return pick(n, "", "D0", "D1", "D2", "D3") }

// SystemPower names a SYSTEM_POWER_STATE.
func SystemPower(n uint32) string { return pick(n, "", "S0", "S1", "S2", "S3", "S4", "S5") }

// PowerAction says what a POWER_ACTION is, from the public wdm.h; "" for none.
func PowerAction(n uint32) string {
	return pick(n, "", "", "sleep", "hibernation", "shutdown", "restart", "power off", "warm eject", "display off")
}

func pick(n uint32, names ...string) string {
	if int64(n) < int64(len(names)) {
		return names[n]
	}
	return ""
}
