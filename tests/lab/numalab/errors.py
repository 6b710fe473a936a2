class LabError(Exception):
    """The lab itself could not do it: what, why, what to try; and the exit status to end with."""

    def __init__(self, text, status=125):
        super().__init__(text)
        self.status = status
