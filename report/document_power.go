package report

// BugIRPJSON is an I/O request packet.
type BugIRPJSON struct {
	Address   string            `json:"address"`
	Parameter int               `json:"parameter,omitempty" jsonschema_description:"1 to 4: that points to it"`
	Major     string            `json:"major,omitempty"`
	Minor     *int              `json:"minor,omitempty" jsonschema_description:"absent when its stack location is not in the dump"`
	Device    string            `json:"device,omitempty"`
	Driver    string            `json:"driver,omitempty" jsonschema_description:"name of the driver object that has it"`
	Module    string            `json:"module,omitempty"`
	Completed bool              `json:"completed,omitempty" jsonschema_description:"no driver has it: it is back with its sender, or was not sent"`
	Power     *PowerRequestJSON `json:"power,omitempty" jsonschema_description:"what a power IRP asks for"`
	Locations []IRPLocationJSON `json:"locations,omitempty" jsonschema_description:"stack locations from the current one up to that of the driver that got it first"`
	For       *DeviceNodeJSON   `json:"for,omitempty" jsonschema_description:"device that a power IRP is for"`
}

// PowerRequestJSON is what a power IRP asks for.
type PowerRequestJSON struct {
	Of     string `json:"of" jsonschema_description:"device or system"`
	State  string `json:"state,omitempty" jsonschema_description:"D0 to D3 of a device, S0 to S5 of the system"`
	Action string `json:"action,omitempty" jsonschema_description:"why: sleep, hibernation, shutdown ..."`
}

// IRPLocationJSON is a stack location of an IRP: a driver that has or had it.
type IRPLocationJSON struct {
	Number     int    `json:"number" jsonschema_description:"1 is the lowest driver's"`
	Major      string `json:"major,omitempty"`
	Minor      int    `json:"minor"`
	Pending    bool   `json:"pending,omitempty" jsonschema_description:"the driver said that it completes the IRP later"`
	Device     string `json:"device,omitempty"`
	Driver     string `json:"driver,omitempty"`
	Module     string `json:"module,omitempty"`
	Completion string `json:"completion,omitempty" jsonschema_description:"routine to call on completion"`
}

// DeviceNodeJSON is a device as Plug and Play knows it.
type DeviceNodeJSON struct {
	PDO      string            `json:"pdo" jsonschema_description:"physical device object"`
	Instance string            `json:"instance_path,omitempty"`
	Service  string            `json:"service,omitempty"`
	Stack    []DeviceStackJSON `json:"stack,omitempty" jsonschema_description:"device objects from the physical one upwards"`
}

// DeviceStackJSON is a device object with its driver.
type DeviceStackJSON struct {
	Device string `json:"device"`
	Driver string `json:"driver,omitempty"`
	Module string `json:"module,omitempty"`
}

// PowerTriageJSON is what a power failure's triage block leads to.
type PowerTriageJSON struct {
	Parameter int               `json:"parameter" jsonschema_description:"1 to 4: that points to it"`
	IRPs      []BugIRPJSON      `json:"irps,omitempty" jsonschema_description:"power IRPs that are not done"`
	Threads   []PowerThreadJSON `json:"threads,omitempty" jsonschema_description:"of the power manager, which hand IRPs to drivers"`
	Devices   []DeviceNodeJSON  `json:"devices,omitempty" jsonschema_description:"that are waited for"`
	Truncated bool              `json:"truncated,omitempty" jsonschema_description:"the dump does not hold all of it"`
}

// PowerThreadJSON is a thread of the power manager.
type PowerThreadJSON struct {
	ETHREAD string `json:"ethread"`
	Thread  string `json:"thread,omitempty" jsonschema_description:"process and thread id in hexadecimal"`
	IRP     string `json:"irp,omitempty" jsonschema_description:"that it is handing to a driver; none when it is idle"`
	Device  string `json:"device,omitempty"`
	Driver  string `json:"driver,omitempty"`
	Module  string `json:"module,omitempty"`
	At      string `json:"at,omitempty" jsonschema_description:"innermost frame of a driver on its stack"`
}
