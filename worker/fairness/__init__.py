"""Works out rho of jobs that have ended, and the shares of days that are over."""
